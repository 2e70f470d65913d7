/** Output of tasks: a title, and fields below it in one column. Amounts with their unit, times in UTC. */
import { toDecimal } from '../domain/units.ts'

type Fields = Readonly<Record<string, unknown>>

export function print(title: string, fields: Fields): void {
  console.log(title)
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  for (const [name, value] of Object.entries(fields)) console.log(`  ${name.padEnd(width)}  ${value}`)
}

export const numbered = (number: number, title: string, fields: Fields): void =>
  print(`${number}. ${title}`, fields)

// ---------------------------------------------------------------------- amounts

export const usdm = (wei: bigint): string => `${toDecimal(wei)} USDM`
export const units = (quantity: bigint): string => `${toDecimal(quantity)} units`
export const price = (wei: bigint): string => `${toDecimal(wei)} USDM per unit`
/** Formats millionths as percent. */
export const percent = (millionths: bigint): string => `${toDecimal(millionths * 10n ** 14n)} %`

// ---------------------------------------------------------------------- times

export const timeOfMillis = (millis: bigint | number): string =>
  BigInt(millis) === 0n
    ? '-'
    : new Date(Number(millis)).toISOString().replace('T', ' ').replace('.000', '').replace('Z', ' UTC')

export const timeOfSeconds = (seconds: bigint | number): string => timeOfMillis(BigInt(seconds) * 1000n)

const SPANS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const

/** In the largest unit that represents it exactly. */
export function duration(seconds: number): string {
  const [span, name] = SPANS.find(([each]) => seconds % each === 0 && seconds >= each) ?? [1, 's']
  return `${seconds / span} ${name}`
}

export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? each.toString() : each), 2)
