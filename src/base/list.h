/* A doubly linked list whose links are members of its items: it allocates nothing, and removes an
 * item anywhere in constant time. */
#ifndef BL_BASE_LIST_H
#define BL_BASE_LIST_H

#include <stddef.h>

struct bl_link {
	struct bl_link *before, *next;
};

struct bl_list { /* all zero: empty */
	struct bl_link *first, *last;
	size_t count;
};

/* The item that has this link as its member; NULL for NULL. */
#define BL_LISTED(link, type, member)                                                              \
	((type *)((link) ? (void *)((char *)(link)-offsetof(type, member)) : NULL))

/* Appends. */
static inline void bl_list_add(struct bl_list *list, struct bl_link *link)
{
	*link = (struct bl_link){.before = list->last};
	if (list->last)
		list->last->next = link;
	else
		list->first = link;
	list->last = link;
	list->count++;
}

static inline void bl_list_remove(struct bl_list *list, const struct bl_link *link)
{
	if (link->before)
		link->before->next = link->next;
	else
		list->first = link->next;
	if (link->next)
		link->next->before = link->before;
	else
		list->last = link->before;
	list->count--;
}

#endif
