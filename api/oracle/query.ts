/** The state of feeds and the reports that were used, from the write side. */
import type { Db } from '../../db/client.ts'
import type { Feed } from '../../domain/prices/feed.ts'

export const feedsOfMarket = (db: Db, marketId: number) =>
  db.selectFrom('oracle_reports').selectAll().where('market_id', '=', marketId).orderBy('feed').execute()

export const usedReport = (db: Db, marketId: number, feed: Feed, observedAt: number) =>
  db
    .selectFrom('used_reports')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('feed', '=', feed)
    .where('observed_at', '=', observedAt)
    .executeTakeFirst()
