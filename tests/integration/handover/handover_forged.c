/* Texts that bizlock_export() did not write, but somebody who has read such texts, and the
 * table. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "core/ticket.h"
#include "cr_test.h"

TestSuite(handover_forged, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 60000

/* A text for the present row of "k". */
static struct bl_ticket ticket_of_row(void)
{
	struct row row = row_of(&world, KEY("k"));
	struct bl_ticket t = {.fence = row.fence, .depth = row.depth, .lease_ms = LEASE_MS};
	struct bl_err err;

	cr_assert_eq(bl_key_make(&t.key, KEY("k"), &err), BIZLOCK_OK);
	snprintf(t.owner, sizeof(t.owner), "%s", row.owner);
	return t;
}

static void write_ticket(const struct bl_ticket *t, char text[BIZLOCK_EXPORT_MAX])
{
	struct bl_err err;

	cr_assert_eq(bl_ticket_write(t, text, BIZLOCK_EXPORT_MAX, &err), BIZLOCK_OK);
}

/* Everybody who can read the table can see the owner and the fence of a lock. */
Test(handover_forged, one_for_a_lock_that_is_held_is_refused)
{
	bizlock *holder = client(NULL), *thief = client(NULL);
	const char *const owners[] = {NULL, "task-1", "export-1", "export-0123456789abcdefg"};
	char text[BIZLOCK_EXPORT_MAX];
	const char *before;

	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		struct bl_ticket t;

		expect(OK, holder,
		       acquire_renewed(holder, "k", .owner = owners[i], .lease_ms = LEASE_MS));
		t = ticket_of_row();
		write_ticket(&t, text);
		before = row_text("k");
		expect(INVALID, thief, bizlock_import(thief, text, "thief", NULL));
		cr_assert_str_eq(row_text("k"), before);
		expect(OK, holder, bizlock_verify(holder, KEY("k"), owners[i]));
		expect(OK, holder, bizlock_release(holder, KEY("k"), owners[i], NULL));
	}
}

/* No lock may be held under such a name. */
Test(handover_forged, the_name_of_an_exported_hold_is_nobodys)
{
	bizlock *b = client(NULL);

	expect(INVALID, b, acquire_as(b, "k", "export-0123456789abcdef"));
	expect_message(b, "exported");
}

/* The rest of the text must agree with the row. */
Test(handover_forged, one_that_was_changed_is_refused)
{
	bizlock *giver = client(NULL), *heir = client(NULL);
	char text[BIZLOCK_EXPORT_MAX], real[BIZLOCK_EXPORT_MAX];
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct bl_ticket t;

	expect(OK, giver, acquire_renewed(giver, "k", .lease_ms = LEASE_MS));
	expect(OK, giver, acquire_renewed(giver, "k", .lease_ms = LEASE_MS));
	expect(OK, giver, bizlock_export(giver, KEY("k"), NULL, real, sizeof(real)));
	t = ticket_of_row();
	t.lease_ms = 10 * LEASE_MS;
	write_ticket(&t, text);
	expect(LOST, heir, bizlock_import(heir, text, NULL, NULL));
	t = ticket_of_row();
	t.depth = 1;
	write_ticket(&t, text);
	expect(LOST, heir, bizlock_import(heir, text, NULL, NULL));
	expect(OK, heir, bizlock_import(heir, real, NULL, &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_eq(grant.lease_ms, LEASE_MS);
}
