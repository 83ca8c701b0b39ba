#include "client/conn/jobs.h"

struct bl_job *bl_jobs_first(const struct bl_list *jobs)
{
	return BL_LISTED(jobs->first, struct bl_job, link);
}

struct bl_job *bl_jobs_next(struct bl_list *jobs)
{
	struct bl_job *job = bl_jobs_first(jobs);

	if (job)
		bl_list_remove(jobs, &job->link);
	return job;
}

void bl_job_wake(struct bl_job *job)
{
	if (job->waited_for)
		bl_event_set(&job->ended);
}

void bl_job_end(struct bl_job *job, enum bl_job_state state)
{
	job->state = state;
	bl_job_wake(job);
}
