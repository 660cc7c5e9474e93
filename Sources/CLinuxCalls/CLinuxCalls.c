#include "CLinuxCalls.h"
