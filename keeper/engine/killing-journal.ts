/** Kill points of crash tests: `before-append-<kind>` and `after-append-<kind>` of a group with a row of the kind. */
import type { Entry } from '../../domain/exchange/apply.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Journal } from './ports.ts'

/** The journal, where the process can end before a group is sent, and once it is stored and its commands are not answered yet. */
export const killingJournal = (journal: Journal<Entry>, killPoint: KillPointHook): Journal<Entry> => ({
  read: journal.read,
  readWritten: journal.readWritten,
  async append(group) {
    for (const { row } of group.rows) killPoint(`before-append-${row.kind}`)
    const isStored = await journal.append(group)
    if (isStored) for (const { row } of group.rows) killPoint(`after-append-${row.kind}`)
    return isStored
  },
})
