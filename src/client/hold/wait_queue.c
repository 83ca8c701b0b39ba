#include "client/hold/wait_queue.h"

#include <stdlib.h>
#include <string.h>

static struct bl_place *first_of(const struct bl_queue *queue)
{
	return BL_LISTED(queue->places.first, struct bl_place, link);
}

static struct bl_queue **queue_link(struct bl_queues *queues, const struct bl_key *key)
{
	struct bl_queue **at = &queues->buckets[key->hash % BL_QUEUES];

	while (*at && !bl_key_equal(first_of(*at)->key, key))
		at = &(*at)->next;
	return at;
}

struct bl_queue *bl_queue_find(const struct bl_queues *queues, const struct bl_key *key)
{
	struct bl_queue *queue = queues->buckets[key->hash % BL_QUEUES];

	while (queue && !bl_key_equal(first_of(queue)->key, key))
		queue = queue->next;
	return queue;
}

struct bl_place *bl_place_next(const struct bl_place *place)
{
	return BL_LISTED(place->link.next, struct bl_place, link);
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
	struct bl_place *place = first_of(queue);

	while (place && place->aside)
		place = bl_place_next(place);
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
	bl_list_add(&queue->places, &place->link);
	queue->alone += place->alone;
	return queue;
}

void bl_queue_leave(struct bl_queues *queues, struct bl_queue *queue, struct bl_place *place)
{
	struct bl_queue **link = queue_link(queues, place->key);
	bool was_first = bl_queue_first(queue) == place;

	bl_list_remove(&queue->places, &place->link);
	queue->alone -= place->alone;
	pthread_cond_destroy(&place->first);
	if (!queue->places.first) {
		*link = queue->next;
		free(queue->holder);
		free(queue);
	} else if (was_first) {
		wake_first(queue);
	}
}
