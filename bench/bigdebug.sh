#!/bin/sh
# Makes a program with more than 500 MB of debug sections: bench/bigdebug.sh FOLDER
#
# Leaves FOLDER/bigdebug. "bigdebug SECONDS" burns CPU in thousands of functions and the calls inlined into
# them. The same bytes come out each time for the same compiler. Needs g++ and binutils, about 3 GB of disk.
#
# Compiling that much would take half an hour. So four C++ units are compiled, and each is copied with
# another name of the same length written over its namespace, in its symbols and in its strings alike: for
# the linker and for a debugger the copies are units of their own.
set -eu

copies=${COPIES:-30}
folder=${1:?usage: bigdebug.sh FOLDER}
mkdir -p "$folder"
cd "$folder"
export LC_ALL=C

cat >unit.cc <<'SOURCE'
#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace unit_nsxx {

template <int N> struct Key {
	unsigned long a, b;
	bool operator<(const Key &o) const { return a < o.a || (a == o.a && b < o.b); }
};

template <int N> inline unsigned long mix(unsigned long x)
{
	x ^= x >> (N % 13 + 7);
	x *= 0x9e3779b97f4a7c15UL + 2 * N;
	return x ^ x >> 29;
}

template <int N> inline Key<N> make(unsigned long x)
{
	return Key<N>{ mix<N>(x), mix<N + 1>(x + N) };
}

template <int N> struct Table {
	std::map<Key<N>, std::vector<unsigned long>> by_key;
	std::vector<std::pair<Key<N>, std::string>> list;

	void put(unsigned long x)
	{
		by_key[make<N>(x)].push_back(mix<N + 2>(x));
		list.emplace_back(make<N>(x + 1), std::string("x") + std::to_string(x % 97));
	}
	unsigned long sum()
	{
		unsigned long s = 0;

		for (auto &e : by_key)
			for (auto v : e.second)
				s += mix<N + 3>(v);
		return s;
	}
	void order()
	{
		std::sort(list.begin(), list.end(), [](const auto &p, const auto &q) { return p.first < q.first; });
	}
};

template <int N> __attribute__((noinline)) unsigned long work(unsigned long x)
{
	Table<N> t;

	for (int i = 0; i < 16; i++)
		t.put(x + i);
	t.order();
	return t.sum() + t.list.front().first.a;
}

} // namespace

#define W(n) r += unit_nsxx::work<BASE * 100 + n>(x + n);
extern "C" unsigned long unit_nsxx_run(unsigned long x)
{
	unsigned long r = 0;

	W(1) W(2) W(3) W(4) W(5) W(6) W(7) W(8) W(9) W(10) W(11) W(12) W(13) W(14) W(15) W(16) W(17) W(18)
	return r;
}
SOURCE

compile() {
	for base in "$@"; do
		g++ -O2 -g -DBASE="$base" -c -o "base$base.o" unit.cc
	done
}
compile 1 3 &
compile 2 4
wait $!

{
	echo '#include <stdlib.h>'
	echo '#include <stdio.h>'
	echo '#include <time.h>'
	for base in 1 2 3 4; do
		for copy in $(seq -w "$copies"); do
			echo "unsigned long u${base}n${copy}nsxx_run(unsigned long);"
		done
	done
	echo 'static unsigned long (*const units[])(unsigned long) = {'
	for base in 1 2 3 4; do
		for copy in $(seq -w "$copies"); do
			echo "u${base}n${copy}nsxx_run,"
			sed "s/unit_nsxx/u${base}n${copy}nsxx/g" "base$base.o" >"u${base}n${copy}.o"
		done
		rm "base$base.o"
	done
	cat <<-'SOURCE'
	};
	int main(int argc, char **argv)
	{
		double seconds = argc > 1 ? atof(argv[1]) : 1;
		unsigned long x = 0, n = sizeof(units) / sizeof(units[0]);
		struct timespec start, now;

		clock_gettime(CLOCK_MONOTONIC, &start);
		do {
			for (unsigned long i = 0; i < n; i++)
				x += units[i](x % 100003 + i);
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while ((now.tv_sec - start.tv_sec) + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
		printf("%lu\n", x);
		return 0;
	}
	SOURCE
} >main.c
gcc -O2 -g -c -o main.o main.c
g++ -o bigdebug main.o u?n*.o
rm -f u?n*.o main.o

size -A bigdebug | awk '/\.debug_/ { n += $2 } END { printf "%d MB of debug sections\n", n / 1e6; exit n < 5e8 }'
