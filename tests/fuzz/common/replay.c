/* replay FOLDER: gives each file of the folder to the target. Any compiler can build this,
 * so that what libFuzzer has once found stays a test everywhere. */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

#define INPUT_MAX (1 << 20)

static void replay(const char *folder, const char *name)
{
	uint8_t *data = malloc(INPUT_MAX);
	char path[4096];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	printf("%s\n", path); /* the last one shown is the one that failed */
	file = fopen(path, "r");
	assert(data && file);
	size = fread(data, 1, INPUT_MAX, file);
	assert(!ferror(file));
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

int main(int argc, char **argv)
{
	DIR *folder = opendir(argc == 2 ? argv[1] : "");
	const struct dirent *entry;
	int count = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		replay(argv[1], entry->d_name);
		count++;
	}
	closedir(folder);
	printf("%d inputs\n", count);
	return count == 0;
}
