/** The public list of announcements. */
import { listAnnouncements } from '../../db/announcements.ts'
import type { Db } from '../../db/client.ts'
import type { App } from '../http/types.ts'
import { decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { Announcements, AnnouncementsQuery } from './schema.ts'
import { announcementView } from './view.ts'

export function announcementRoutes(app: App, { db }: { readonly db: Db }): void {
  app.get(
    '/v0/announcements',
    {
      config: { cached: true },
      schema: {
        tags: ['exchange'],
        summary: 'List announcements of the operator, newest first',
        description:
          'Notices and maintenance windows. Withdrawn announcements stay in the list, with the time of their withdrawal. The topic `system` of the ' +
          'live feed has the newest ones.',
        operationId: 'listAnnouncements',
        querystring: AnnouncementsQuery,
        response: { 200: Announcements },
      },
    },
    async ({ query: { limit = 20, cursor } }) => {
      const after = decodeCursor('announcements', cursor)
      if (after !== null && !/^\d{1,15}$/.test(after.id)) throw invalidCursor(cursor as string)
      const beforeId = after === null ? null : Number(after.id)
      const rows = await listAnnouncements(db, { beforeId, limit: limit + 1 })
      const { page, next_cursor } = pageOf(
        'announcements',
        rows,
        limit,
        ({ created_at, announcement_id }) => ({ at: created_at, id: String(announcement_id) }),
      )
      return { announcements: page.map(announcementView), next_cursor }
    },
  )
}
