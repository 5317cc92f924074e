# Makes up points in eight dimensions around four centres: lines of CSV, eight numbers and the centre's number.
#
#     mkdir -p build/readers
#     for i in 0 1; do awk -v seed=$i -v rows=500 -f configs/readers/points.awk > build/readers/points-$i.csv; done
#
# The same lines everywhere: Park and Miller's generator, whose products doubles hold exactly.

function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }

BEGIN {
  state = 12345 + 1000 * seed
  for (i = 0; i < 100; ++i) uniform()
  for (row = 0; row < rows; ++row) {
    centre = int(4 * uniform())
    for (k = 0; k < 8; ++k) printf "%.3f,", (k % 4 == centre ? 1 : 0) + 2 * uniform() - 1
    print centre
  }
}
