#include "client/conn/jobs.h"

void bl_jobs_add(struct bl_jobs *jobs, struct bl_job *job)
{
	job->next = NULL;
	if (jobs->last)
		jobs->last->next = job;
	else
		jobs->first = job;
	jobs->last = job;
	jobs->count++;
}

struct bl_job *bl_jobs_next(struct bl_jobs *jobs)
{
	struct bl_job *job = jobs->first;

	if (job)
		bl_jobs_withdraw(jobs, job);
	return job;
}

void bl_jobs_withdraw(struct bl_jobs *jobs, struct bl_job *job)
{
	struct bl_job *before = NULL;

	for (struct bl_job *j = jobs->first; j != job; j = j->next)
		before = j;
	if (before)
		before->next = job->next;
	else
		jobs->first = job->next;
	if (jobs->last == job)
		jobs->last = before;
	jobs->count--;
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
