#include "client/line.h"

#include <stdlib.h>

static struct bl_line **find(struct bl_lines *lines, const struct bl_key *key)
{
	struct bl_line **at = &lines->buckets[key->hash % BL_LINES];

	while (*at && !bl_key_equal(&(*at)->key, key))
		at = &(*at)->next;
	return at;
}

struct bl_line *bl_line_find(const struct bl_lines *lines, const struct bl_key *key)
{
	struct bl_line *line = lines->buckets[key->hash % BL_LINES];

	while (line && !bl_key_equal(&line->key, key))
		line = line->next;
	return line;
}

void bl_line_stir(const struct bl_lines *lines, const struct bl_key *key)
{
	struct bl_line *line = bl_line_find(lines, key);

	if (line)
		pthread_cond_signal(&line->head->first);
}

struct bl_line *bl_line_join(struct bl_lines *lines, const struct bl_key *key,
                             struct bl_place *place)
{
	struct bl_line **at = find(lines, key), *line = *at;

	place->next = NULL;
	if (bl_cond_init(&place->first) != 0)
		return NULL;
	if (!line) {
		line = calloc(1, sizeof(*line));
		if (!line) {
			pthread_cond_destroy(&place->first);
			return NULL;
		}
		line->key = *key;
		*at = line;
	}
	if (line->tail)
		line->tail->next = place;
	else
		line->head = place;
	line->tail = place;
	return line;
}

static void unlink_place(struct bl_line *line, struct bl_place *place)
{
	struct bl_place *before = NULL;

	for (struct bl_place *p = line->head; p != place; p = p->next)
		before = p;
	if (before)
		before->next = place->next;
	else
		line->head = place->next;
	if (line->tail == place)
		line->tail = before;
}

void bl_line_leave(struct bl_lines *lines, struct bl_line *line, struct bl_place *place)
{
	bool was_first = bl_line_first(line, place);

	unlink_place(line, place);
	pthread_cond_destroy(&place->first);
	if (!line->head) {
		*find(lines, &line->key) = line->next;
		free(line);
	} else if (was_first) {
		pthread_cond_signal(&line->head->first);
	}
}
