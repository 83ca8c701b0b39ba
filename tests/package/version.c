/* Prints the version of the library it is linked with. */
#include <bizlock.h>
#include <stdio.h>

int main(void)
{
	return puts(bizlock_version()) < 0;
}
