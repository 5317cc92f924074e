# Gives lines of a click log, as clickgen writes them, a second label behind their last value: a purchase, of some clicks.
#     awk -f configs/two_labels.awk data/clicks/train/part-00000
{ print $0, 1, ($2 == 1 && $NF % 3 != 0) ? 1 : 0 }
