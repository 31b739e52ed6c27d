/*
 * opener.h - opens a page in the browser of the person at this machine (--open).
 *
 * A command that reads or records gives up its rights, and a browser must not inherit what is left of them: neither
 * root, nor the owner of a capture whom root became, nor a process that may gain no rights. So a helper is forked before
 * all that, and waits until it is told that there is something to show:
 *
 *	opener_start(page)  ->  the command gives up its rights, reads, writes the page
 *	                        opener_show(path)  ->  helper: as the user at the terminal, xdg-open
 *
 * Behind sudo that user is $SUDO_UID, if /etc/passwd has it. Root alone gets no browser. The helper dies with the command.
 */
#pragma once

struct err;

/* Forks the helper; call it before the first thread. page: the only file that the helper opens, whatever
 * it receives. NULL: it receives a capture, and has `gasflame report --open` make the page and open it. */
int opener_start(const char *page, struct err *err);
/* Tells the helper, and waits until it is done, but not for the browser. It says itself what went wrong, with the path.
 * Without a helper nothing happens. */
void opener_show(const char *path);
