#define _GNU_SOURCE 1
#include "cr_findings.h"

#include <stdio.h>

static int keep(void *arg, const bizlock_finding *found)
{
	struct findings *f = arg;
	struct finding *one = &f->all[f->count];

	if (f->count == sizeof(f->all) / sizeof(f->all[0]))
		die("too many findings");
	if (found->size < sizeof(bizlock_finding))
		die("%s: size is %zu", found->name, found->size);
	snprintf(one->name, sizeof(one->name), "%s", found->name);
	snprintf(one->text, sizeof(one->text), "%s", found->text);
	snprintf(one->remedy, sizeof(one->remedy), "%s", found->remedy);
	one->level = found->level;
	cr_assert_str_neq(one->text, "", "%s", one->name);
	cr_assert_eq(one->remedy[0] == '\0', one->level == BIZLOCK_GOOD, "%s: %s", one->name,
	             one->remedy);
	f->count++;
	return 0;
}

struct findings doctor_of(const struct world *w, const char *const *options, int want)
{
	return doctor_of_server(w, options, want, want);
}

struct findings doctor_of_server(const struct world *w, const char *const *options, int want,
                                 int or_else)
{
	struct findings f = {.count = 0};
	bizlock *b = client_new(w, options);
	int rc = bizlock_doctor(b, keep, &f);

	cr_assert(rc == want || rc == or_else, "%s: %s", bizlock_err_name(rc), bizlock_errmsg(b));
	bizlock_close(b);
	return f;
}

const struct finding *finding_of(const struct findings *f, const char *name)
{
	for (unsigned i = 0; i < f->count; i++)
		if (strcmp(f->all[i].name, name) == 0)
			return &f->all[i];
	return NULL;
}

void expect_finding(const struct findings *f, const char *name, int level, const char *word)
{
	const struct finding *one = finding_of(f, name);

	cr_assert(one, "no finding %s", name);
	cr_assert_eq(one->level, level, "%s has level %d: %s", name, one->level, one->text);
	cr_assert(strstr(one->text, word) || strstr(one->remedy, word), "%s: %s (%s)", name,
	          one->text, one->remedy);
}

void expect_good(const struct findings *f, const char *but)
{
	for (unsigned i = 0; i < f->count; i++) {
		const struct finding *one = &f->all[i];

		cr_assert(one->level == BIZLOCK_GOOD || strstr(but, one->name), "%s: %s (%s)",
		          one->name, one->text, one->remedy);
	}
}

void heal(const struct findings *f, const char *name)
{
	const char *remedy = finding_of(f, name)->remedy;
	const char *end = strstr(remedy, ": ");

	db_run(world.admin, "%.*s", end ? (int)(end - remedy) : (int)strlen(remedy), remedy);
}
