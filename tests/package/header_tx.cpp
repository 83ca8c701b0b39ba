// The same for C++.
#include "header_tx.c"
