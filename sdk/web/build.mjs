// Builds what the service serves: two builds, each as a module, as a script and with types, and their hashes.
import { build } from 'esbuild'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const here = dirname(fileURLToPath(import.meta.url))
const { version } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
// One folder for each version: pages that name a version and its hash go on working when a new one comes.
const out = join(process.argv[2] || join(here, '../../src/vettance/websdk/static'), version)
const LIMITS = { core: 6 * 1024, full: 25 * 1024 }

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const files = {}
for (const [name, limit] of Object.entries(LIMITS)) {
  for (const [format, suffix] of [['esm', '.mjs'], ['iife', '.js']]) {
    const file = `vettance-${name}${suffix}`
    await build({
      entryPoints: [join(here, `src/${name}.ts`)],
      outfile: join(out, file),
      bundle: true,
      minify: true,
      format,
      globalName: format === 'iife' ? 'Vettance' : undefined,
      target: 'es2020',
      legalComments: 'none',
      banner: { js: `/*! Vettance web SDK (${name}), Apache-2.0; see NOTICE.txt beside it */` },
    })
    const content = readFileSync(join(out, file))
    const gzip = gzipSync(content, { level: 9 }).length
    if (gzip > limit) throw new Error(`${file} has ${gzip} bytes gzipped, more than ${limit}`)
    const integrity = 'sha384-' + createHash('sha384').update(content).digest('base64')
    files[file] = { bytes: content.length, gzip, integrity }
    console.log(`${file}: ${content.length} bytes, ${gzip} gzipped of ${limit}`)
  }
}
const types = readFileSync(join(here, 'src/types.ts'), 'utf8')
const tail =
  '\nexport declare const VERSION: string\nexport declare const createVettance: (options: Options) => Vettance\n'
writeFileSync(join(out, 'vettance.d.ts'), types + tail)
writeFileSync(join(out, 'NOTICE.txt'), readFileSync(join(here, 'NOTICE.txt')))
writeFileSync(join(out, 'manifest.json'), JSON.stringify({ version, files }, null, 2) + '\n')
