/** The `announcements` table: notices of the operator to traders, and maintenance windows. */
import { sql } from 'kysely'
import type { Millis } from '../domain/units.ts'
import type { Db } from './client.ts'
import type { AnnouncementsTable } from './schema.ts'

export const ANNOUNCEMENT_KINDS = ['notice', 'maintenance'] as const
export type AnnouncementKind = (typeof ANNOUNCEMENT_KINDS)[number]

export const MAX_TITLE = 200
export const MAX_BODY = 4_000

export type Announcement = Omit<AnnouncementsTable, 'announcement_id'> & { readonly announcement_id: number }

/** Returns the announcement's id. */
export async function postAnnouncement(
  db: Db,
  announcement: Omit<Announcement, 'announcement_id' | 'withdrawn_at'>,
): Promise<number> {
  const { announcement_id } = await db
    .insertInto('announcements')
    .values({ ...announcement, withdrawn_at: null })
    .returning('announcement_id')
    .executeTakeFirstOrThrow()
  return announcement_id
}

/** False if there is no such announcement, or it was withdrawn before. */
export async function withdrawAnnouncement(db: Db, id: number, now: Millis): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('announcements')
    .set({ withdrawn_at: now })
    .where('announcement_id', '=', id)
    .where('withdrawn_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** The newest first, those before `beforeId` if it is given. */
export const listAnnouncements = (
  db: Db,
  { beforeId, limit }: { readonly beforeId: number | null; readonly limit: number },
): Promise<Announcement[]> =>
  db
    .selectFrom('announcements')
    .selectAll()
    .$if(beforeId !== null, (query) => query.where('announcement_id', '<', beforeId as number))
    .orderBy('announcement_id', 'desc')
    .limit(limit)
    .execute()

/** Maintenance windows that have not ended, by their ends. */
export const openMaintenance = (db: Db, now: Millis, limit: number): Promise<Announcement[]> =>
  db
    .selectFrom('announcements')
    .selectAll()
    .where(sql<boolean>`kind = 'maintenance' and withdrawn_at is null`)
    .where('ends_at', '>', now)
    .orderBy('ends_at')
    .limit(limit)
    .execute()
