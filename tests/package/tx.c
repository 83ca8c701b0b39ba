/* Prints the version of the library it is linked with, and has a handle of the client library. */
#include <bizlock_tx.h>
#include <stdio.h>

int main(void)
{
	MYSQL *tx = mysql_init(NULL);

	if (!tx)
		return 1;
	mysql_close(tx);
	return puts(bizlock_version()) < 0;
}
