/** The properties of test/proofs/*.sol: one external function each, which solc's model checker proves or not. */
import { globSync, readFileSync } from 'node:fs'

export interface Property {
  /** The contract that states it, and its file. */
  readonly contract: string
  readonly path: string
  readonly name: string
  /** The function's notice. */
  readonly statement: string
  /** The library that it is about. */
  readonly library: string
  /** A test that checks the library with generated input. */
  readonly fuzzed: string
  /** The contract without its other properties. */
  readonly source: string
}

const PROPERTY = / {4}\/\/\/ @notice [\s\S]*?\n {4}}\n/g
const HELPER = /function _/

const tagOf = (source: string, tag: string, path: string): string => {
  const value = new RegExp(`@custom:${tag} (\\S+)`).exec(source)?.[1]
  if (value === undefined) throw new Error(`${path} has no tag @custom:${tag}`)
  return value
}

function propertiesIn(path: string): Property[] {
  const source = readFileSync(path, 'utf8')
  const contract = /^contract (\w+)/m.exec(source)?.[1]
  if (contract === undefined) throw new Error(`${path} declares no contract`)
  const functions = [...source.matchAll(PROPERTY)].map(([text]) => text).filter((text) => !HELPER.test(text))
  return functions.map((text) => {
    const others = functions.filter((other) => other !== text)
    const notice = /@notice ([\s\S]*?)\n {4}function (\w+)/.exec(text)
    return {
      contract,
      path,
      name: notice?.[2] ?? '',
      statement: (notice?.[1] ?? '').replaceAll(/\n {4}\/\/\/ /g, ' '),
      library: tagOf(source, 'library', path),
      fuzzed: tagOf(source, 'fuzzed', path),
      source: others.reduce((rest, other) => rest.replace(other, ''), source),
    }
  })
}

export const allProperties = (): Property[] => globSync('test/proofs/*.sol').sort().flatMap(propertiesIn)
