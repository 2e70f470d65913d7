/** The entry of `docs/api-changes.md` for changes that break clients: the same change of a field in several operations is listed once. Pure. */

/** `POST /v0/orders 200.order.status: can now be "X"` → operation, status, path of the field and the change. */
const OF_OPERATION = /^([A-Z]+ \/\S+?)(?: (\d{3}))?((?: |\.).*)?: (.*)$/

interface Change {
  readonly operation: string
  readonly status: string
  readonly field: string
  readonly what: string
}

function parse(change: string): Change {
  const [, operation = '', status = '', path = '', what = ''] = OF_OPERATION.exec(change) ?? []
  // A message of the feed: its name says where.
  if (operation === '') return { operation, status, field: '', what: change }
  return { operation, status, field: path.split('.').at(-1)?.trim() ?? '', what }
}

const grouped = <T>(rows: readonly T[], key: (row: T) => string): T[][] => [
  ...Map.groupBy(rows, key).values(),
]

const operationLine = (same: readonly Change[]): string => {
  const statuses = [...new Set(same.map(({ status }) => status))].filter((status) => status !== '')
  return `  - \`${[same[0]?.operation, statuses.join()].join(' ').trim()}\``
}

export function changeList(changes: readonly string[]): string {
  const places = grouped(changes.map(parse), ({ operation, status, field, what }) =>
    operation === '' ? what : `${operation} ${status} ${field}`,
  ).map((same) => ({
    ...(same[0] as Change),
    what: [...new Set(same.map(({ what }) => what))].join(', '),
  }))
  const lines = grouped(places, ({ field, what }) => `${field}\n${what}`).map((same) => {
    const { operation, field, what } = same[0] as Change
    const title = field === '' ? `- \`${what}\`` : `- \`${field}: ${what}\``
    if (operation === '') return title
    return [title, ...grouped(same, (each) => each.operation).map(operationLine)].join('\n')
  })
  return lines.join('\n')
}
