# Turns the raw log of `clickgen --format=raw` into MultiSlot text: label, 13 counts as log(1 + count), slots of ids.
# An empty field is a missing value: the count 0, the id 0.
BEGIN { FS = "\t" }
{
  line = "1 " $1 " 13"
  for (i = 2; i <= 14; ++i) line = line " " log(1 + $i)
  for (i = 15; i <= NF; ++i) {
    ids = $i
    n = gsub(/,/, " ", ids) + 1
    line = line (ids == "" ? " 1 0" : " " n " " ids)
  }
  print line
}
