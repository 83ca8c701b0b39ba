#define _GNU_SOURCE 1
#include "cr_group.h"

#include <stdio.h>

struct cluster group;

void group_end(void)
{
	if (world.admin)
		mysql_close(world.admin); /* the schema goes with the servers */
	cluster_end(&group);
}

void group_begin(const char *args)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	not_here_unless(cluster_is_group(), "groups are MySQL's");
	cluster_start(&group, args);
	world_make(&world, &group.nodes[0]);
	world_migrate(&world);
	group_catches_up(0);
}

struct world group_world(int member)
{
	return world_by_way_of(&world, &group.nodes[member]);
}

MYSQL *group_admin(int member)
{
	return db_open(&group.nodes[member], NULL);
}

void group_catches_up(int with)
{
	MYSQL *db = group_admin(with);
	char *done = db_text(db, "SELECT REPLACE(@@global.gtid_executed, '\n', '')");

	mysql_close(db);
	done[strcspn(done, "\n")] = '\0';
	for (int i = 0; i < CLUSTER_NODES; i++) {
		db = group_admin(i);
		eventually(db_number(db, "SELECT GTID_SUBSET('%s', @@global.gtid_executed)", done));
		mysql_close(db);
	}
	free(done);
}

MYSQL *group_hold_up(void)
{
	MYSQL *late = db_open(&group.nodes[0], world.schema), *db = group_admin(1);

	db_run(late, "CREATE TABLE IF NOT EXISTS apart (id INT PRIMARY KEY) ENGINE=InnoDB");
	group_catches_up(0);
	db_run(late, "START TRANSACTION");
	db_number(late, "SELECT COUNT(*) FROM apart");
	db_run(db, "ALTER TABLE `%s`.apart COMMENT = 'changed'", world.schema);
	mysql_close(db);
	return late;
}

bizlock *group_client(int member)
{
	struct world w = group_world(member);

	return client_open(&w, NULL);
}

const char *group_hosts(void)
{
	static char hosts[256];
	size_t len = 0;

	for (int i = 0; i < CLUSTER_NODES; i++)
		len += (size_t)snprintf(hosts + len, sizeof(hosts) - len, "%s%s:%u", i ? "," : "",
		                        group.nodes[i].host, group.nodes[i].port);
	return hosts;
}
