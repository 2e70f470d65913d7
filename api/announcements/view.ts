/** Converts announcements to their JSON form. */
import type { Announcement as Stored } from '../../db/announcements.ts'
import type { Millis } from '../../domain/units.ts'
import { isoTime } from '../wire/amounts.ts'
import type { Announcement, AnnouncementHead, MaintenanceWindow } from './schema.ts'

const timeOrNull = (at: number | null): string | null => (at === null ? null : isoTime(at))

export const headView = ({ starts_at, ends_at, created_at, ...row }: Stored): AnnouncementHead => ({
  announcement_id: row.announcement_id,
  kind: row.kind,
  title: row.title,
  market_id: row.market_id,
  starts_at: timeOrNull(starts_at),
  ends_at: timeOrNull(ends_at),
  created_at: isoTime(created_at),
})

export const announcementView = (row: Stored): Announcement => ({
  ...headView(row),
  body: row.body,
  withdrawn_at: timeOrNull(row.withdrawn_at),
})

/** Only for announcements with a window. */
export const windowView = (row: Stored, now: Millis): MaintenanceWindow => ({
  announcement_id: row.announcement_id,
  title: row.title,
  market_id: row.market_id,
  starts_at: isoTime(row.starts_at as number),
  ends_at: isoTime(row.ends_at as number),
  active: (row.starts_at as number) <= now,
})
