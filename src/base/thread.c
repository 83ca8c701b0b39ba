#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A variable of the process, because serials must be unique across clients and threads. It only
 * counts, so it needs no set-up and no tear-down. */
static _Atomic uint64_t last_serial;

/* No kernel knows this advice. Emulators (qemu-user up to 7.2) and sandboxes that drop madvise()
 * accept it like any other and do nothing: with the page of such a system a forked child would
 * pass for its parent, and use the parent's connections. */
#define UNKNOWN_ADVICE 0x424c

/* The stamp, on a page that the kernel wipes in a forked child; NULL: the kernel cannot do that. */
static _Atomic uint64_t *page;
static pthread_once_t page_once = PTHREAD_ONCE_INIT;

static void make_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	if (madvise(at, size, UNKNOWN_ADVICE) != 0 && madvise(at, size, MADV_WIPEONFORK) == 0)
		page = at;
	else
		munmap(at, size);
}

uint64_t bl_process_stamp(void)
{
	uint64_t stamp, fresh;

	pthread_once(&page_once, make_page);
	if (!page)
		return (uint64_t)getpid();
	stamp = atomic_load(page);
	if (stamp)
		return stamp;
	fresh = atomic_fetch_add(&last_serial, 1) + 1;
	return atomic_compare_exchange_strong(page, &stamp, fresh) ? fresh : stamp;
}

bool bl_process_is(uint64_t stamp)
{
	return stamp == (page ? atomic_load(page) : (uint64_t)getpid());
}

/* The stamp under which `own` was filled. If the process has another stamp, only the serial of
 * `own` is valid. */
static _Thread_local uint64_t own_stamp;
static _Thread_local struct bl_thread own;

const struct bl_thread *bl_thread_self(void)
{
	uint64_t stamp = bl_process_stamp();

	if (own.serial == 0)
		own.serial = atomic_fetch_add(&last_serial, 1) + 1;
	if (own_stamp != stamp) {
		own.tid = (uint64_t)syscall(SYS_gettid);
		own.name_len = (uint8_t)snprintf(own.name, sizeof(own.name), "%" PRIu64, own.tid);
		own_stamp = stamp;
	}
	return &own;
}

/* Thread-local variables of the program are on the stack, too. If there is no room for them, the
 * stack is as large as those of the program's own threads. */
static bool create(pthread_t *ret, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	int rc;

	if (pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setstacksize(&attr, BL_THREAD_STACK);
	rc = pthread_create(ret, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (rc == EINVAL)
		rc = pthread_create(ret, NULL, fn, arg);
	return rc == 0;
}

bool bl_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = create(ret, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

struct bl_token {
	atomic_uint users; /* the thread itself counts while it runs */
	atomic_bool ended;
};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

void bl_token_drop(struct bl_token *token)
{
	if (token && atomic_fetch_sub(&token->users, 1) == 1)
		free(token);
}

bool bl_token_ended(const struct bl_token *token)
{
	return token && atomic_load(&token->ended);
}

/* Called by the ending thread itself. */
static void end(void *arg)
{
	struct bl_token *token = arg;

	atomic_store(&token->ended, true);
	bl_token_drop(token);
}

static void make_key(void)
{
	key_made = pthread_key_create(&key, end) == 0;
}

static struct bl_token *own_token(void)
{
	struct bl_token *token = pthread_getspecific(key);

	if (token)
		return token;
	token = calloc(1, sizeof(*token));
	if (!token)
		return NULL;
	atomic_init(&token->users, 1);
	if (pthread_setspecific(key, token) == 0)
		return token;
	free(token);
	return NULL;
}

struct bl_token *bl_token_self(void)
{
	struct bl_token *token;

	pthread_once(&key_once, make_key);
	token = key_made ? own_token() : NULL;
	if (token)
		atomic_fetch_add(&token->users, 1);
	return token;
}
