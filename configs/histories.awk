# Makes lines with histories of those of a click log, as clickgen writes them: the label, the floats, an item (the first id of
# slot C6), what was visited (the ids of C1 to C5, as many as there are) and how long ago, a number for each visit.
#     awk -f configs/histories.awk data/clicks/train/part-00000
{
  line = $1
  for (i = 2; i <= 16; ++i) line = line " " $i
  visited = ""
  hours = ""
  visits = 0
  for (slot = 1; slot <= 5; ++slot) {
    for (left = $i; left > 0; --left) {
      visited = visited " " $(++i)
      hours = hours " " 100000 + ++visits
    }
    ++i
  }
  print line, 1, ($i > 0 ? $(i + 1) : 0), visits visited, visits hours
}
