/** Announcements of the operator, and maintenance windows. */
import Type, { type Static } from 'typebox'
import { ANNOUNCEMENT_KINDS } from '../../db/announcements.ts'
import { closed, countInput, expects, named, nullable, Time, words } from '../wire/schema.ts'

export const MOST_ANNOUNCEMENTS = 100

export const AnnouncementsQuery = closed({
  limit: Type.Optional(countInput(MOST_ANNOUNCEMENTS, 20, 'Announcements per page.')),
  cursor: Type.Optional(
    Type.String({
      ...expects('`next_cursor` of the page before'),
      description: '`next_cursor` of the page before.',
    }),
  ),
})

const facts = {
  announcement_id: Type.Integer({ description: 'It grows with each announcement.' }),
  kind: words(ANNOUNCEMENT_KINDS, 'maintenance: it has a window, from `starts_at` until `ends_at`.'),
  title: Type.String(),
  market_id: nullable(Type.Integer({ description: 'The market concerned; null: the whole exchange.' })),
  starts_at: nullable(Time('Start of the maintenance window.')),
  ends_at: nullable(Time('Planned end of the maintenance window.')),
  created_at: Time('When the announcement was posted.'),
}

/** Without the text: the newest are part of each message of the topic `system`. */
export const AnnouncementHead = Type.Object(facts)
export type AnnouncementHead = Static<typeof AnnouncementHead>

export const Announcement = named('Announcement', {
  ...facts,
  body: Type.String({ description: 'Plain text; empty if the title says everything.' }),
  withdrawn_at: nullable(Time('When the operator withdrew it, for example a cancelled maintenance.')),
})
export type Announcement = Static<typeof Announcement>

export const Announcements = named('Announcements', {
  announcements: Type.Array(Announcement, { description: 'The newest first.' }),
  next_cursor: nullable(Type.String()),
})

export const MaintenanceWindow = Type.Object({
  announcement_id: Type.Integer(),
  title: Type.String(),
  market_id: nullable(Type.Integer({ description: 'The market concerned; null: the whole exchange.' })),
  starts_at: Time('Start.'),
  ends_at: Time('Planned end.'),
  active: Type.Boolean({ description: 'Whether the window has started.' }),
})
export type MaintenanceWindow = Static<typeof MaintenanceWindow>
