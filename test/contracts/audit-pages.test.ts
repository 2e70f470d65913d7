/** Pages of docs/audit, compared with the contracts and the encoder that they describe. */
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect } from 'chai'
import { hexlify, type JsonFragment } from 'ethers'
import hre from 'hardhat'
import { encodeSettleBatch } from '../../domain/settlement/settlement-codec.ts'
import { SettlementLens__factory } from '../../typechain-types/factories/SettlementLens__factory.ts'
import {
  buildPart,
  chain,
  fieldsOf,
  firstSigner,
  pair,
  perpetualExchange,
  send,
  wallet,
} from '../support/exchange.ts'
import { perpetual } from '../support/markets.ts'
import { examplePart } from './support/example-part.ts'

type Connection = Awaited<ReturnType<typeof chain>>

const PAGES = ['functions', 'encoding', 'arithmetic']
  .map((page) => readFileSync(`docs/audit/${page}.md`, 'utf8'))
  .join('\n')

/** The text from the heading to the next heading of its level, or to the next page. */
function section(heading: string): string {
  const from = PAGES.indexOf(`\n## ${heading}\n`)
  if (from < 0) throw new RangeError(`docs/audit has no section "${heading}"`)
  const rest = PAGES.slice(from + 1)
  return rest.slice(0, /\n##? /.exec(rest)?.index)
}

const rowsOf = (heading: string): string[][] =>
  section(heading)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )

// ---------------------------------------------------------------------- external functions

/** Functions of OpenZeppelin that always revert here: their overrides need no names. */
const DISABLED = new Set(['setAuthority', 'multicall'])
const UNCHANGING = new Set(['view', 'pure'])
const DEPLOYED = globSync('contracts/*.sol')

function changingFunctions(path: string): string[] {
  const name = basename(path, '.sol')
  const { abi } = JSON.parse(readFileSync(`artifacts/${path}/${name}.json`, 'utf8')) as {
    abi: JsonFragment[]
  }
  return abi
    .filter(({ type, stateMutability }) => type === 'function' && !UNCHANGING.has(stateMutability ?? ''))
    .map((fragment) => fragment.name as string)
    .sort()
}

/** Function names by contract, from the lists below the names of contracts. */
function documented(): Map<string, readonly string[]> {
  const lists = section('External functions')
    .split(/\n\*\*/)
    .slice(1)
  return new Map(
    lists.map((list) => {
      const lines = list.split('\n').filter((line) => line.startsWith('- '))
      const names = lines.flatMap((line) => {
        const functions = line.replaceAll(/\[.*?\]/g, '').split(': ')[0] as string
        return [...functions.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
      })
      return [/^[\w, ]+/.exec(list)?.[0] ?? '', names]
    }),
  )
}

const EXTENSION = 'IsolatedTrader, in the extension'

describe('the pages of docs/audit', () => {
  describe('when a contract has an external function that changes state', () => {
    const table = documented()
    const namesOf = (contract: string) =>
      [
        ...(table.get(contract) ?? []),
        ...(contract === 'IsolatedTrader' ? (table.get(EXTENSION) ?? []) : []),
      ].toSorted()

    for (const path of DEPLOYED) {
      const contract = basename(path, '.sol')
      if (contract === 'MarketExtension' || changingFunctions(path).length === 0) continue
      it(`its list has each of these functions: ${contract}`, () => {
        expect(namesOf(contract)).to.deep.equal(changingFunctions(path))
      })
    }

    it('the list of the extension has exactly the functions of MarketExtension', () => {
      expect((table.get(EXTENSION) ?? []).toSorted()).to.deep.equal(
        changingFunctions('contracts/MarketExtension.sol'),
      )
    })

    it('the lists name no other contract', () => {
      const known = [...DEPLOYED.map((path) => basename(path, '.sol')), EXTENSION]
      expect([...table.keys()].filter((name) => !known.includes(name))).to.deep.equal([])
    })
  })

  // -------------------------------------------------------------------- source of the deployed contracts

  describe('when a contract is deployed', () => {
    const LINKED = ['ChangeLib', 'FundingLib', 'WindDownLib', 'ValidationLib']
    const deployable = [...DEPLOYED, ...LINKED.map((name) => `contracts/libraries/${name}.sol`)]

    it('its source names one compiler version, that of the build', () => {
      const version = /version: '([\d.]+)'/.exec(readFileSync('hardhat.config.ts', 'utf8'))?.[1]
      for (const path of deployable)
        expect(/^pragma solidity (.*);$/m.exec(readFileSync(path, 'utf8'))?.[1], path).to.equal(version)
    })

    it('its ABI names every parameter of every function', () => {
      for (const path of deployable.filter((path) => !path.includes('/libraries/'))) {
        const { abi } = JSON.parse(
          readFileSync(`artifacts/${path}/${basename(path, '.sol')}.json`, 'utf8'),
        ) as { abi: JsonFragment[] }
        const unnamed = abi
          .filter(({ type, name }) => type === 'function' && !DISABLED.has(name ?? ''))
          .filter(({ inputs = [] }) => inputs.some(({ name }) => name === ''))
        expect(
          unnamed.map(({ name }) => name),
          path,
        ).to.deep.equal([])
      }
    })

    it('every function of its interface has a description', () => {
      const bare = globSync('contracts/{interfaces/*,PauseLatch,SettlementLens,TestUSDM}.sol').flatMap(
        (path) =>
          [
            ...readFileSync(path, 'utf8').matchAll(
              /^(.*)\n {4}function (\w+)\([^{;]*?\) (?:external|public)/gm,
            ),
          ]
            .filter(([, before = '']) => !/^ {4}(?:\/\/\/| \*\/)/.test(before))
            .map(([, , name]) => `${basename(path, '.sol')}.${name}`),
      )
      expect(bare).to.deep.equal([])
    })
  })

  // -------------------------------------------------------------------- unchecked blocks

  describe('when a block is unchecked', () => {
    const BLOCK = /unchecked \{(?: \/\/ (U\d+))?/g
    const cited = new Map<string, Set<string>>()
    const uncited: string[] = []
    for (const path of globSync('contracts/**/*.sol').filter((path) => !path.includes('/mocks/')))
      for (const [, row] of readFileSync(path, 'utf8').matchAll(BLOCK)) {
        const file = basename(path, '.sol')
        if (row === undefined) uncited.push(file)
        else cited.set(row, (cited.get(row) ?? new Set()).add(file))
      }
    const items = section('Bounds of unchecked blocks').matchAll(/^- \*\*(U\d+)\*\* ([^.]*)\./gm)
    const rows = new Map(
      [...items].map(([, id = '', files = '']) => [
        id,
        new Set([...files.matchAll(/`(\w+)/g)].map((match) => match[1])),
      ]),
    )

    it('its comment cites an entry of the list of bounds', () => {
      expect(uncited).to.deep.equal([])
    })

    it('the entry that it cites names its file, and no entry is uncited', () => {
      expect(Object.fromEntries([...rows].sort())).to.deep.equal(Object.fromEntries([...cited].sort()))
    })
  })

  // -------------------------------------------------------------------- narrowing casts

  describe('when a value is cast to a narrower type', () => {
    const entry = /`(\w+)`:\s+((?:`[^`]+`(?:,\s+)?)+)/g
    const documented = [...section('Narrowing casts').matchAll(entry)].flatMap(([, file, list = '']) =>
      [...list.matchAll(/`([^`]+)`/g)].map(([, cast]) => `${file}: ${cast}`),
    )

    it('the list has the cast, and no cast that the contracts do not have', () => {
      const found = globSync('contracts/**/*.sol')
        .filter((path) => !path.includes('/mocks/'))
        .flatMap((path) =>
          narrowingCasts(readFileSync(path, 'utf8')).map((cast) => `${basename(path, '.sol')}: ${cast}`),
        )
      expect(found.length).to.be.greaterThan(50)
      expect(documented.sort()).to.deep.equal(found.sort())
    })
  })

  // -------------------------------------------------------------------- one part in hex

  describe('when the example part is encoded', () => {
    it('its bytes are those of the page', () => {
      expect(hexOf('One part in hex')).to.equal(hexlify(encodeSettleBatch(examplePart(), perpetual)))
    })

    it('SettlementLens decodes them to the fields of the page', async () => {
      const lens = await new SettlementLens__factory(await firstSigner(await chain())).deploy()
      const part = examplePart()
      const [header, orders, proof] = await lens.decodePart(hexOf('One part in hex'))
      const { actionId, batchId, asOf, price, orders: count, oraclePrice } = fieldsOf(header)
      expect([actionId, batchId, asOf, price, count, oraclePrice].map(Number)).to.deep.equal([
        ...[part.actionId, part.batchId, part.asOf, part.price, part.fills.length, Number(part.oracle.price)],
      ])
      expect(
        orders.map(fieldsOf).map(({ maker, salt, fill, taker }) => [maker, salt, fill, taker]),
      ).to.deep.equal([
        [wallet('alice').address, 5n, 1_000n, 1_000n],
        [wallet('bob').address, 9n, 1_000n, 0n],
      ])
      expect(proof).to.equal(part.oracle.signatures)
    })
  })

  // -------------------------------------------------------------------- memory of a part

  describe('when a part of two orders settles', () => {
    it('the market allocates memory at the addresses of the memory map', async function () {
      // Code instrumented for coverage has another memory layout.
      if (hre.globalOptions.coverage) this.skip()
      const exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
      const [alice, bob] = exchange.users
      const part = await buildPart(exchange, { price: 500_000, fills: pair(alice!, bob!, 1_000) })
      const { hash } = await send(exchange, encodeSettleBatch(part, exchange.spec))
      const starts = rowsOf('Memory of a part').map(([from = '']) => Number(from.replace(',', '')))
      expect(await freePointers(exchange, hash)).to.deep.equal(starts.filter((from) => from >= 192))
    })
  })
})

/** The distinct casts to a type of less than a word. The number of an address (`uint160(account)`) is as wide as the address. */
function narrowingCasts(source: string): string[] {
  const code = source.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '')
  const casts = [...code.matchAll(/\b(u?int|bytes)(\d+)\(/g)].flatMap(
    ({ 0: start, 1: type, 2: size, index }) => {
      const argument = code.slice(index + start.length, closingParenthesis(code, index + start.length))
      const bits = Number(size) * (type === 'bytes' ? 8 : 1)
      const isAddress = bits === 160 && /^[a-zA-Z.]+$/.test(argument)
      return bits >= 256 || isAddress ? [] : [`${start}${argument})`]
    },
  )
  return [...new Set(casts)]
}

/** Index of the parenthesis that closes the one before `from`. */
function closingParenthesis(code: string, from: number): number {
  let depth = 1
  let at = from
  for (; depth > 0; at++) depth += code[at] === '(' ? 1 : code[at] === ')' ? -1 : 0
  return at - 1
}

interface TraceStep {
  readonly depth: number
  readonly memory?: readonly string[]
}

/** Every value of the free memory pointer (word 2) in the transaction's outermost call, in order. */
async function freePointers({ connection }: { connection: Connection }, hash: string): Promise<number[]> {
  const options = { enableMemory: true }
  const trace = await connection.ethers.provider.send('debug_traceTransaction', [hash, options])
  const steps = trace.structLogs as TraceStep[]
  const values = steps
    .filter(({ depth, memory }) => depth === steps[0]?.depth && (memory?.length ?? 0) > 2)
    .map(({ memory }) => Number(`0x${memory?.[2]?.replace(/^0x/, '')}`))
  return values.filter((value, at) => value !== 0 && value !== values[at - 1])
}

/** The hex of a section's code block: the second column of its rows. */
function hexOf(heading: string): string {
  const block = /```text\n([\s\S]*?)```/.exec(section(heading))?.[1] ?? ''
  const digits = block.split('\n').map((line) => /^ *\d+ {2}([0-9a-f]+)(?: |$)/.exec(line)?.[1] ?? '')
  return `0x${digits.join('')}`
}
