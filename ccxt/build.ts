/** Places the class beside CCXT's own base classes, as a checkout of CCXT would, and loads it. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'

const FOLDER = import.meta.dirname
const CCXT = join(FOLDER, 'node_modules/ccxt/js/src')
/** Each process has a folder of its own: tests run beside each other. */
const BUILD = join(FOLDER, '.build', String(process.pid))

export const MISSING_CCXT = 'ccxt is not installed: npm ci --prefix ccxt'
export const hasCcxt = (): boolean => existsSync(CCXT)

/** Methods of the class as a program calls them. Parameters are CCXT's own: see its manual. */
export type CcxtExchange = Record<string, (...args: unknown[]) => Promise<unknown>> & {
  fetch(url: string, method?: string, headers?: object, body?: string): Promise<unknown>
  setMarkets(markets: unknown): void
  readonly has: Readonly<Record<string, boolean | string | undefined>>
  readonly symbols: readonly string[]
}
export type CcxtClass = new (options: object) => CcxtExchange

const OPTIONS: ts.CompilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 }

/** CCXT generates a class with the methods of `describe().api`; the base class creates the same ones when it is constructed. */
const ABSTRACT = "import { Exchange } from '../base/Exchange.js'\nexport default class extends Exchange {}\n"

export async function loadClass(): Promise<CcxtClass> {
  rmSync(BUILD, { recursive: true, force: true })
  mkdirSync(join(BUILD, 'abstract'), { recursive: true })
  symlinkSync(join(CCXT, 'base'), join(BUILD, 'base'))
  const source = readFileSync(join(FOLDER, 'clearbatch.ts'), 'utf8')
  writeFileSync(
    join(BUILD, 'clearbatch.js'),
    ts.transpileModule(source, { compilerOptions: OPTIONS }).outputText,
  )
  writeFileSync(join(BUILD, 'abstract/clearbatch.js'), ABSTRACT)
  const loaded = await import(pathToFileURL(join(BUILD, 'clearbatch.js')).href)
  rmSync(BUILD, { recursive: true })
  return loaded.default
}

/** CCXT's own errors, whose classes programs catch. */
export const ccxtErrors = async (): Promise<Record<string, new (message: string) => Error>> =>
  import(pathToFileURL(join(CCXT, 'base/errors.js')).href)
