#include "client/hold/wait_queue.h"

#include <stdlib.h>
#include <string.h>

static struct bl_queue **queue_link(struct bl_queues *queues, const struct bl_key *key)
{
	struct bl_queue **at = &queues->buckets[key->hash % BL_QUEUES];

	while (*at && !bl_key_equal((*at)->head->key, key))
		at = &(*at)->next;
	return at;
}

struct bl_queue *bl_queue_find(const struct bl_queues *queues, const struct bl_key *key)
{
	struct bl_queue *queue = queues->buckets[key->hash % BL_QUEUES];

	while (queue && !bl_key_equal(queue->head->key, key))
		queue = queue->next;
	return queue;
}

void bl_place_wake(struct bl_place *place)
{
	if (place->woken)
		place->woken(place);
	else
		pthread_cond_signal(&place->first);
}

void bl_queue_note(struct bl_queue *queue, const char *holder)
{
	free(queue->holder);
	queue->holder = strdup(holder);
}

struct bl_place *bl_queue_first(const struct bl_queue *queue)
{
	struct bl_place *place = queue->head;

	while (place && place->aside)
		place = place->next;
	return place;
}

static void wake_first(const struct bl_queue *queue)
{
	struct bl_place *first = bl_queue_first(queue);

	if (first)
		bl_place_wake(first);
}

void bl_queue_wake_first(const struct bl_queues *queues, const struct bl_key *key)
{
	struct bl_queue *queue = bl_queue_find(queues, key);

	if (queue)
		wake_first(queue);
}

struct bl_queue *bl_queue_join(struct bl_queues *queues, struct bl_place *place)
{
	struct bl_queue **at = queue_link(queues, place->key), *queue = *at;

	place->before = place->next = NULL;
	if (bl_cond_init(&place->first) != 0)
		return NULL;
	if (!queue) {
		queue = calloc(1, sizeof(*queue));
		if (!queue) {
			pthread_cond_destroy(&place->first);
			return NULL;
		}
		*at = queue;
	}
	if (queue->tail)
		queue->tail->next = place;
	else
		queue->head = place;
	place->before = queue->tail;
	queue->tail = place;
	queue->alone += place->alone;
	return queue;
}

static void unlink_place(struct bl_queue *queue, struct bl_place *place)
{
	if (place->before)
		place->before->next = place->next;
	else
		queue->head = place->next;
	if (place->next)
		place->next->before = place->before;
	else
		queue->tail = place->before;
}

void bl_queue_leave(struct bl_queues *queues, struct bl_queue *queue, struct bl_place *place)
{
	struct bl_queue **link = queue_link(queues, place->key);
	bool was_first = bl_queue_first(queue) == place;

	unlink_place(queue, place);
	queue->alone -= place->alone;
	pthread_cond_destroy(&place->first);
	if (!queue->head) {
		*link = queue->next;
		free(queue->holder);
		free(queue);
	} else if (was_first) {
		wake_first(queue);
	}
}
