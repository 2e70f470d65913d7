/** Records which rows of the contract have a test. */
import { existsSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { it } from 'mocha'
import { ENDPOINTS, FIELDS, RULES } from './contract.ts'
import { COMMANDS, PLACEMENTS } from './contract-requests.ts'
import { SIGNATURES } from './contract-signing.ts'

const tested = new Set<string>()

/** A test of one row. A row may have several. */
export function test(id: string, title: string, run: () => Promise<void> | void): void {
  tested.add(id)
  it(title, run)
}

/** A row that a test of another file proves; that test must exist. */
export function testElsewhere(id: string, provenBy: string): void {
  const [file = '', title = ''] = provenBy.split(/: (.*)/s)
  test(id, `${id} (proven by ${file})`, () => {
    expect(existsSync(file), file).to.equal(true)
    expect(readFileSync(file, 'utf8')).to.include(title)
  })
}

export const endpointId = ({ method, path }: (typeof ENDPOINTS)[number]): string => `${method} ${path}`
export const fieldId = (object: string, field: string): string => `${object}.${field}`

const ROWS: readonly string[] = [
  ...ENDPOINTS.map(endpointId),
  ...Object.entries(FIELDS).flatMap(([object, fields]) =>
    Object.keys(fields).map((field) => fieldId(object, field)),
  ),
  ...[...PLACEMENTS, ...SIGNATURES, ...COMMANDS, ...RULES].map(({ id }) => id),
]

export function testCoverage(): void {
  it(`when the suite has run, all ${ROWS.length} rows of the contract have a test`, () => {
    expect(ROWS.filter((id) => !tested.has(id))).to.deep.equal([])
    expect([...tested].filter((id) => !ROWS.includes(id))).to.deep.equal([])
    expect(new Set(ROWS).size).to.equal(ROWS.length)
  })
}
