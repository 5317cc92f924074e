#pragma once

#include "model.pb.h"

namespace millrace {

/// Floats in a row that the model sees: dim, or what follows from the accessor.
int DimOf(const TableDesc& table);

/// Floats that an embedding layer has of each slot: a row of its table, of one with an accessor as use_cvm says.
int SlotWidthOf(const EmbeddingLayer& layer, const TableDesc& table);

/// How a table's rows start: as it says, else uniform 0.01.
Initializer InitOf(const TableDesc& table);

/// How the weights of a layer start: as it says, else by Xavier.
Initializer InitOf(const FcLayer& layer);

/// How its bias starts: as it says, else at zero.
Initializer BiasInitOf(const FcLayer& layer);

}  // namespace millrace
