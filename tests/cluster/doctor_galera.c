/* What bizlock_doctor() finds at the nodes of a cluster. */
#define _GNU_SOURCE 1
#include "cr_findings.h"
#include "cr_galera.h"

TestSuite(doctor_galera, .fini = galera_end, .timeout = 480);

static struct findings look(int node)
{
	struct world w = world_by_way_of(&world, &galera_nodes[node].at);

	return doctor_of(&w, NULL, BIZLOCK_OK);
}

static bool lost_the_others(int node)
{
	struct findings f = look(node);

	return finding_of(&f, "galera")->level == BIZLOCK_BAD;
}

Test(doctor_galera, nodes_that_are_synced_desynced_and_left_alone)
{
	struct findings f;
	MYSQL *db;

	galera_begin();
	for (int i = 0; i < GALERA_NODES; i++) {
		bizlock_close(galera_client(i));
		f = look(i);
		expect_finding(&f, "galera", BIZLOCK_GOOD, "Synced");
		expect_finding(&f, "doorbell", BIZLOCK_GOOD, "of this node");
		expect_good(&f, "durability");
	}

	db = db_open(&galera_nodes[1].at, NULL);
	db_run(db, "SET GLOBAL wsrep_desync = ON");
	f = look(1);
	expect_finding(&f, "galera", BIZLOCK_WARN, "Desynced");
	expect_good(&f, "galera durability");
	db_run(db, "SET GLOBAL wsrep_desync = OFF");
	mysql_close(db);

	/* A node of two that is cut off cannot know whether the other one goes on. */
	own_server_do(&galera_nodes[1], "kill");
	eventually(lost_the_others(0));
	f = look(0);
	expect_finding(&f, "galera", BIZLOCK_BAD, "wsrep_ready=OFF");
	expect_finding(&f, "galera", BIZLOCK_BAD, "another node");
	expect_finding(&f, "server", BIZLOCK_GOOD, "MariaDB");
	expect_finding(&f, "tables", BIZLOCK_WARN, "could not be looked at");
	expect_finding(&f, "clock", BIZLOCK_GOOD, "");
	if (!db_try(world.admin, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'"))
		db_run(world.admin, "SET GLOBAL wsrep_provider_pc_bootstrap = ON"); /* 11 */
	eventually(!lost_the_others(0));
}
