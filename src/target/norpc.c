/* norpc.c - rpc.h in a build without libcurl. */
#include <errno.h>

#include "base/err.h"
#include "target/rpc.h"

int rpc_open(const char *url, struct rpc **ret, struct err *err)
{
	return err_set(err, ENOSYS, "this gasflame was built without libcurl, which --rpc needs");
}

int rpc_block(struct rpc *r, const char *by, struct rpcblock *ret, struct err *why)
{
	return -ENOSYS;
}

void rpc_stop(struct rpc *r)
{
}

void rpc_close(struct rpc *r)
{
}
