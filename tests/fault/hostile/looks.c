/* What is only looked at while the server lies, by functions that read all they are shown. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "hostile.h"
#include "patience.h"

static int see_info(void *arg, const bizlock_info *info)
{
	struct run *r = arg;

	r->read += strlen(info->biz_type) + strlen(info->owner) + strlen(info->note);
	r->shown += strncmp(info->biz_id, r->id, strlen(r->id)) == 0;
	return 0;
}

static int show(struct run *r, const char *text, const char *other)
{
	r->read += strlen(text) + strlen(other);
	r->shown++;
	return 0;
}

static int see_waiter(void *arg, const bizlock_waiter *waiter)
{
	return show(arg, waiter->user, waiter->host);
}

static int see_finding(void *arg, const bizlock_finding *finding)
{
	return show(arg, finding->text, finding->remedy);
}

static int see_migration(void *arg, const bizlock_migration *migration)
{
	return show(arg, migration->applied_at, migration->name);
}

int do_each(struct run *r)
{
	return bizlock_each(r->b, NULL, see_info, r);
}

int do_each_of_type(struct run *r)
{
	return bizlock_each(r->b, "test", see_info, r);
}

static int see_run(void *arg, const bizlock_run *run)
{
	struct run *r = arg;

	r->read += strlen(run->biz_type) + strlen(run->owner);
	r->shown += strcmp(run->biz_id, r->id) == 0;
	return 0;
}

int do_each_run(struct run *r)
{
	return bizlock_each_run(r->b, NULL, NULL, see_run, r);
}

int do_look(struct run *r)
{
	return bizlock_look(r->b, KEY(r->id), see_info, r);
}

int do_waiters(struct run *r)
{
	struct call call;
	bizlock_key key = KEY(r->id);
	int rc;

	call_start(&call, r->bench->stranger, r->id, .wait_ms = 20000, .owner = "other");
	eventually(doorbell_waiters(&r->bench->world) > 0);
	rc = bizlock_waiters(r->b, &key, 1, see_waiter, r);
	snprintf(r->errmsg, sizeof(r->errmsg), "%s", bizlock_errmsg(r->b));
	stranger_releases(r, ME);
	must_work(r->bench->stranger, call_join(&call), "another stranger");
	stranger_releases(r, "other");
	return rc;
}

int do_doctor(struct run *r)
{
	return bizlock_doctor(r->b, see_finding, r);
}

int do_each_migration(struct run *r)
{
	return bizlock_each_migration(r->b, see_migration, r);
}
