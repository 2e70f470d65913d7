/** The README of the client names every method of its parts, and no others. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Client } from '../../client/client.ts'

const PARTS = [
  'marketData',
  'orders',
  'account',
  'positions',
  'adjustments',
  'sessionKeys',
  'marginNonces',
  'bank',
] as const

/** Not for programs of traders: the factory signs what `orders` sends. */
const INTERNAL = new Set(['constructor', 'factory'])

function methodsOf(part: object): string[] {
  const names = [part, Object.getPrototypeOf(part), Object.getPrototypeOf(Object.getPrototypeOf(part))]
    .filter((each) => each !== null && each !== Object.prototype)
    .flatMap((each) => Object.getOwnPropertyNames(each))
  return [...new Set(names)].filter((name) => !INTERNAL.has(name)).sort()
}

/** The last cell of each row whose first cell begins with the part. */
function namedOf(part: string, readme: string): string[] {
  const rows = [...readme.matchAll(new RegExp(`^\\| \`client\\.${part}\`[^|]*\\|[^|]*\\|([^|;:]*)`, 'gm'))]
  return rows.flatMap(([, cell]) => (cell as string).trim().split(', ')).sort()
}

describe('client/README.md', () => {
  const readme = readFileSync('client/README.md', 'utf8')
  const client = new Client({
    baseUrl: 'http://127.0.0.1:1',
    rpcUrl: 'http://127.0.0.1:1',
    apiKey: 'cb_key',
    privateKey: `0x${'11'.repeat(32)}`,
  })

  for (const part of PARTS)
    it(`when client.${part} has a method, its row names it, and it names no other`, () => {
      expect(namedOf(part, readme)).to.deep.equal(methodsOf(client[part]))
    })
})
