/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of map files agree on. The format stands in doc/map.schema.json. */
#ifndef GTOPO_LIB_JSON_H
#define GTOPO_LIB_JSON_H

#define GTOPO_MAP_FORMAT "gputopo-map"
#define GTOPO_MAP_VERSION 1

#endif
