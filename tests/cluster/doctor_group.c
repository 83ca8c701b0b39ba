/* What bizlock_doctor() finds at the members of a group. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"
#include "cr_group.h"

TestSuite(doctor_group, .fini = group_end, .timeout = 480);

#define PASSWORD "c0rrect-horse"

static struct findings look(int member)
{
	struct world w = group_world(member);

	return doctor_of(&w, NULL, BIZLOCK_OK);
}

static void each_member(void)
{
	struct findings f = look(0);

	expect_finding(&f, "group", BIZLOCK_GOOD, "this one ONLINE PRIMARY, ONLINE SECONDARY");
	expect_finding(&f, "group", BIZLOCK_GOOD, "one primary");
	expect_finding(&f, "galera", BIZLOCK_GOOD, "");
	expect_finding(&f, "doorbell", BIZLOCK_GOOD, "");
	f = look(1);
	expect_finding(&f, "group", BIZLOCK_GOOD, "this one ONLINE SECONDARY");
	expect_finding(&f, "read_only", BIZLOCK_BAD, "host");
}

/* What is known without that privilege is said nevertheless. */
static void a_user_without_the_privilege(void)
{
	struct world w = world;
	struct findings f;

	db_run(world.admin, "CREATE USER u IDENTIFIED BY '" PASSWORD "'; GRANT ALL ON `%s`.* TO u",
	       world.schema);
	snprintf(w.at.user, sizeof(w.at.user), "u");
	snprintf(w.at.password, sizeof(w.at.password), PASSWORD);
	f = doctor_of(&w, NULL, BIZLOCK_OK);
	expect_finding(&f, "group", BIZLOCK_WARN, "one primary, group_replication_consistency=");
	expect_finding(&f, "group", BIZLOCK_WARN, "GRANT SELECT ON performance_schema");
	heal(&f, "group");
	f = doctor_of(&w, NULL, BIZLOCK_OK);
	expect_finding(&f, "group", BIZLOCK_GOOD, "ONLINE PRIMARY");
}

static void weak_consistency(void)
{
	struct findings f;

	db_run(world.admin, "SET GLOBAL group_replication_consistency = EVENTUAL");
	f = look(0);
	expect_finding(&f, "group", BIZLOCK_WARN, "=EVENTUAL");
	db_run(world.admin, "SET GLOBAL group_replication_consistency = AFTER");
	f = look(0);
	expect_finding(&f, "group", BIZLOCK_GOOD, "=AFTER");
	db_run(world.admin, "SET GLOBAL group_replication_consistency = DEFAULT");
}

/* Until the group has noticed that it has no majority any more, the lock that is tried waits in its
 * commit, and the doctor's connection is given up. */
static bool is(int level)
{
	struct world w = group_world(0);
	struct findings f =
	        doctor_of_server(&w, OPTIONS("io_timeout_ms", "2000"), BIZLOCK_OK, BIZLOCK_CONN);

	return finding_of(&f, "group")->level == level;
}

static void members_that_are_missing(void)
{
	struct findings f;

	cr_assert(cluster_do(&group, "kill", 2));
	eventually(is(BIZLOCK_WARN));
	f = look(0);
	expect_finding(&f, "group", BIZLOCK_WARN, "loses one more");
	cr_assert(cluster_do(&group, "kill", 1));
	eventually(is(BIZLOCK_BAD));
	f = look(0);
	expect_finding(&f, "group", BIZLOCK_BAD, "UNREACHABLE");
	expect_finding(&f, "group", BIZLOCK_BAD, "majority");
}

static void no_member_any_more(void)
{
	struct findings f;

	db_run(world.admin, "STOP GROUP_REPLICATION");
	f = look(0);
	expect_finding(&f, "group", BIZLOCK_BAD, "OFFLINE");
	expect_finding(&f, "group", BIZLOCK_BAD, "START GROUP_REPLICATION");
}

Test(doctor_group, one_primary)
{
	group_begin("");
	each_member();
	a_user_without_the_privilege();
	weak_consistency();
	members_that_are_missing();
	no_member_any_more();
}

Test(doctor_group, several_primaries)
{
	struct findings f;

	group_begin("--several");
	f = look(1);
	expect_finding(&f, "group", BIZLOCK_GOOD, "several primaries");
	expect_finding(&f, "group", BIZLOCK_GOOD, "ONLINE PRIMARY, ONLINE PRIMARY");
	expect_finding(&f, "doorbell", BIZLOCK_GOOD, "of this node");
	expect_good(&f, "durability");
}
