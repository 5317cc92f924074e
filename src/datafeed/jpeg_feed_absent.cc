#include "datafeed/jpeg_feed.h"
#include "reader/jpeg_absent.h"

namespace millrace {

FeedKind JpegFeedKind() {
  const auto refuse = [](const SlotSchema&, const DataFeedDesc&) {
    return Result<std::unique_ptr<DataFeed>>(WithoutJpeg("data_desc.name: \"jpeg\""));
  };
  return {.maker = refuse};
}

}  // namespace millrace
