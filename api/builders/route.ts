/** The public ledger of builders. */
import type { Clock } from '../../service/clock.ts'
import type { App } from '../http/types.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { amount } from '../wire/amounts.ts'
import { type Cursor, decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { DAY, dayText, startOfDay } from '../wire/days.ts'
import { BUILDER_TABLES, type BuilderDayRow, buildersOfDay, daysOfBuilder } from './query.ts'
import { type BuilderDay, Builders, BuildersQuery } from './schema.ts'

export interface BuilderPorts extends ReadPorts {
  readonly clock: Clock
}

const DESCRIPTION = `
Orders can carry the label \`builder\` of the program that has built them. Without \`builder\` the answer lists the builders of a day, largest volume
first; with \`builder\` the days of that builder, newest first. Fills count once their part is mined, and no longer if its block leaves the chain.
Volumes change while pages are read: a builder whose rank changes meanwhile can appear on two pages or on none.
`.trim()

export function builderRoutes(app: App, { readAfter, clock }: BuilderPorts): void {
  app.get(
    '/v0/builders',
    {
      schema: {
        tags: ['markets'],
        summary: 'List volume, fills and orders by builder and day',
        description: DESCRIPTION,
        operationId: 'listBuilders',
        querystring: BuildersQuery,
        response: { 200: Builders },
      },
    },
    async (request) => {
      const { builder, limit = 100, cursor } = request.query
      const given = request.query.day === undefined ? null : startOfDay('day', request.query.day)
      const read = <Row>(query: Parameters<typeof readAfter.read<Row>>[2]) =>
        readAfter.read(request, { tables: BUILDER_TABLES }, query)
      if (builder !== undefined) {
        const place = decodeCursor('builder-days', cursor)
        if (place !== null && place.id !== builder) throw invalidCursor(cursor as string)
        const page = { builder, limit, day: given, before: place?.at ?? null }
        const rows = await read((db) => daysOfBuilder(db, page))
        return answer(pageOf('builder-days', rows, limit, (row) => ({ at: row.day, id: row.builder })))
      }
      const after = placeOf(cursor, given)
      const now = clock.now()
      const day = given ?? after?.day ?? now - (now % DAY)
      const rows = await read((db) => buildersOfDay(db, { day, limit, after }))
      return answer(pageOf('builders', rows, limit, cursorOf))
    },
  )
}

const cursorOf = ({ day, volume, builder }: BuilderDayRow): Cursor => ({
  at: day,
  id: `${volume}-${builder}`,
})

type Place = Pick<BuilderDayRow, 'day' | 'volume' | 'builder'>

/** A cursor names the day, so that pages of the current day stay in it after midnight. */
function placeOf(cursor: string | undefined, day: number | null): Place | null {
  const place = decodeCursor('builders', cursor)
  if (place === null) return null
  const match = /^(\d{1,45})-([a-z0-9-]{1,32})$/.exec(place.id)
  if (match === null || (day !== null && place.at !== day)) throw invalidCursor(cursor as string)
  return { day: place.at, volume: BigInt(match[1] as string), builder: match[2] as string }
}

const answer = ({
  page,
  next_cursor,
}: {
  readonly page: readonly BuilderDayRow[]
  next_cursor: string | null
}) => ({
  builders: page.map(dayView),
  next_cursor,
})

const dayView = ({ builder, day, volume, fills, orders }: BuilderDayRow): BuilderDay => ({
  builder,
  day: dayText(day),
  ...amount('volume', volume),
  fills,
  orders,
})
