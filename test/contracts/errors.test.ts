/** Every custom error is thrown somewhere in the contracts and expected by name in a test. */
import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'

const textOf = (pattern: string): string =>
  globSync(pattern)
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')

const namesIn = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map(([, name = '']) => name)),
]

describe('custom errors', () => {
  const contracts = textOf('contracts/**/*.sol')
  const declared = namesIn(contracts, /^\s+error (\w+)\(/gm)

  it('are each thrown by a contract', () => {
    const thrown = new Set(namesIn(contracts, /\brevert (?:\w+\.)?(\w+)\(/g))
    expect(declared.filter((name) => !thrown.has(name))).to.deep.equal([])
  })

  it('are each expected by name in a test', () => {
    const expected = new Set(
      namesIn(textOf('test/{contracts,parity,support}/**/*.ts'), /['"`/|](\w+)(?=['"`/|(])/g),
    )
    expect(declared.length).to.be.greaterThan(100)
    expect(declared.filter((name) => !expected.has(name))).to.deep.equal([])
  })
})
