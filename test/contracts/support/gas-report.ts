/** The gas tables of docs/audit/gas.md, built from the golden file; `npm run gas` prints the same tables. */
import { MOVES, SALTS, SIZES } from './gas.ts'
import { GAS_BUDGETS } from './gas-budgets.ts'
import { COMPUTE_PRICE, countBytes, type Gas, type GasTable, STORAGE_PRICE } from './gas-charge.ts'

const count = (value: number): string => value.toLocaleString('en-US')
const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const rule = (columns: number): string => `|${'---|'.repeat(columns)}`

const pairOf = (gas: Gas | undefined): string =>
  gas === undefined ? '' : `${count(gas.receipt)} / ${count(gas.charged)}`

/** Gas per settled order, and of everything else: receipt, and as charged on 4326 and 6343. */
export function gasReport(table: GasTable): string[] {
  const perOrder = new Set<string>()
  const cellsOf = (size: number): string[] =>
    SALTS.flatMap((salts) =>
      MOVES.map((move) => {
        const name = `${salts} ${size} ${move}`
        perOrder.add(name)
        return pairOf(table[name])
      }),
    )
  const batches = SIZES.map((size) => row(String(size), ...cellsOf(size)))
  const others = Object.entries(table).filter(([name]) => !perOrder.has(name))
  return [
    row('batch', ...MOVES, ...MOVES.map((move) => `random salts: ${move}`)),
    rule(1 + SALTS.length * MOVES.length),
    ...batches,
    '',
    row('otherwise', 'receipt', '4326, 6343', 'budget of the receipt'),
    rule(4),
    ...others.map(([name, { receipt, charged }]) => {
      const budget = GAS_BUDGETS[name]
      return row(name, count(receipt), count(charged), budget === undefined ? '' : count(budget))
    }),
  ]
}

/** A field of the example part in docs/audit/encoding.md. */
export interface ExampleField {
  readonly name: string
  readonly bytes: Uint8Array
}

const calldataCost = (bytes: Uint8Array): number => {
  const { zero, nonzero } = countBytes(bytes)
  const perZero = COMPUTE_PRICE.zeroByte + STORAGE_PRICE.zeroByte
  const perNonzero = COMPUTE_PRICE.nonzeroByte + STORAGE_PRICE.nonzeroByte
  return zero * perZero + nonzero * perNonzero
}

export const LOG_BYTE = COMPUTE_PRICE.logByte + STORAGE_PRICE.logByte

/** Fields of an order in the log, with their bytes. */
const LOG_FIELDS: readonly (readonly [name: string, bytes: number])[] = [
  ['maker', 20],
  ['leverage, flags', 8],
  ['slot, dead, fee capped, taker mode, forced', 2],
  ['fill', 6],
  ['change of the free balance', 12],
]

/** What the bytes of a settled order cost on 4326 and 6343, field by field: calldata of the example's orders, and log. */
export function byteReport(records: readonly (readonly ExampleField[])[]): string[] {
  const fields = [...new Set(records.flatMap((record) => record.map(({ name }) => name)))]
  const costOf = (record: readonly ExampleField[], isCounted: (name: string) => boolean): number =>
    record.filter(({ name }) => isCounted(name)).reduce((sum, { bytes }) => sum + calldataCost(bytes), 0)
  const costs = (isCounted: (name: string) => boolean): string[] =>
    records.map((record) =>
      record.some(({ name }) => isCounted(name)) ? count(costOf(record, isCounted)) : '',
    )
  const sizeOf = (name: string): string =>
    String(records.flat().find((field) => field.name === name)?.bytes.length ?? '')
  const isFloor = (name: string): boolean => ['maker', 'r', 's'].includes(name)
  const logBytes = LOG_FIELDS.reduce((sum, [, bytes]) => sum + bytes, 0)
  return [
    row('field', 'bytes', 'alice’s order', 'bob’s order'),
    rule(4),
    ...fields.map((name) => row(`calldata: ${name}`, sizeOf(name), ...costs((other) => other === name))),
    row('**calldata**', '', ...costs(() => true)),
    row('of it the floor: signature and maker', '84', ...costs(isFloor)),
    ...LOG_FIELDS.map(([name, bytes]) => {
      const cost = count(bytes * LOG_BYTE)
      return row(`log: ${name}`, String(bytes), cost, cost)
    }),
    row('**log**', String(logBytes), count(logBytes * LOG_BYTE), count(logBytes * LOG_BYTE)),
  ]
}
