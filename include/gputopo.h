/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * libgputopo: the topology of a GPU cluster, with what every link should do and what it was measured to do.
 */
#ifndef GPUTOPO_H
#define GPUTOPO_H

#include <gputopo/affinity.h>
#include <gputopo/campaign.h>
#include <gputopo/error.h>
#include <gputopo/export.h>
#include <gputopo/host.h>
#include <gputopo/map.h>
#include <gputopo/probe.h>

#endif
