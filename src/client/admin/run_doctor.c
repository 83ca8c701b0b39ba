/* The doctor: runs the checks of store/doctor/doctor.h one by one, and shows what they find. */
#include "store/doctor/doctor.h"

#include "client/admin/admin.h"
#include "client/sources.h"

static int tell_finding(const struct bl_finding *f, int (*fn)(void *arg, const bizlock_finding *),
                        void *arg)
{
	bizlock_finding shown = {
	        .size = sizeof(shown),
	        .name = f->name,
	        .text = f->text.data,
	        .remedy = f->remedy.data ? f->remedy.data : "",
	        .level = (int)f->level,
	};

	return fn(arg, &shown);
}

static int run_checks(struct bl_doctor *d, int (*fn)(void *arg, const bizlock_finding *), void *arg,
                      struct bl_err *err)
{
	int rc = BIZLOCK_OK, end = 0;

	for (size_t i = 0; rc == BIZLOCK_OK && end == 0 && i < bl_doctor_checks(); i++) {
		struct bl_finding f;

		rc = bl_doctor_look(d, i, &f, err);
		if (rc != BIZLOCK_NOMEM && f.text.len > 0)
			end = tell_finding(&f, fn, arg);
		bl_finding_free(&f);
	}
	return rc;
}

int bl_client_doctor(struct bizlock *b, int (*fn)(void *arg, const bizlock_finding *), void *arg,
                     struct bl_err *err)
{
	struct bl_config config;
	struct bl_doctor d;
	int rc = bl_client_config(b, &config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_doctor_begin(&d, &config, &b->process);
	rc = run_checks(&d, fn, arg, err);
	bl_doctor_end(&d);
	bl_config_free(&config);
	return rc;
}
