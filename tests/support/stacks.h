/* Measures how much of its stack each thread of the library uses, in every program that is linked
 * with the tests' support and built without sanitizers: the stack is filled with a pattern when the
 * thread begins, and looked at when it ends. A thread that has used
 * more than 128 KiB ends the test: the rest is for callbacks of users, whose frames are not known.
 * The linker lets each call of pthread_create() come here. BIZLOCK_TEST_STACKS names a file that
 * gets a line for each thread: the bytes that it has used. */
#ifndef TEST_STACKS_H
#define TEST_STACKS_H

/* From here on no thread of this process can be started. */
void stacks_refuse_threads(void);

#endif
