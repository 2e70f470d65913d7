/** The feed of one process: follows the read model and serves the topics. */
import type { Db } from '../../db/client.ts'
import type { CalendarCache } from '../../db/trading-calendars.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { readSystem, type StatusLimits } from '../exchange/status.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Notifications } from '../ports.ts'
import type { Completeness } from '../read-after/completeness.ts'
import { createChannels } from './channels.ts'
import { Follower, type FollowerOptions } from './follow.ts'
import { LiveHub } from './hub.ts'
import { Snapshots } from './snapshots.ts'
import { SystemTopic } from './system.ts'

export interface FeedPorts {
  readonly db: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly notifications: Notifications
  readonly completeness: Completeness
  readonly markets: MarketDirectory
  readonly calendars: CalendarCache
  readonly config: StatusLimits
  /** From 0 to 1. */
  readonly random: () => number
}

/** Rows from which clients resume: about a minute of a busy exchange. */
export const FEED_OPTIONS: FollowerOptions = { rows: 20_000, bytes: 64 * 1024 * 1024, pollMs: 500 }

export function createFeed(ports: FeedPorts, options = FEED_OPTIONS) {
  const { db, clock, logger, config, random } = ports
  const { prepare, channelOf } = createChannels(ports)
  const follower = new Follower(
    { ...ports, prepare, accept: (rows) => hub.accept(rows), restart: () => hub.restart() },
    options,
  )
  const now = () => clock.now()
  const system = new SystemTopic({ now, logger, read: () => readSystem(db, clock.now(), config) })
  const snapshots = new Snapshots(ports)
  const hub = new LiveHub({ clock, logger, snapshots, system, random, channelOf }, follower)
  return { hub, follower }
}
