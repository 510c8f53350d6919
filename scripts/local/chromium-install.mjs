// @ts-check
// Finds Chromium or Chrome for the browser tests. If there is none, installs Debian's package where that needs no question and no
// password.

import { canInstall, installPackages } from './apt.mjs';
import { findPrograms, isExecutable, usualFolders } from './programs.mjs';

/** The headless shell comes first: it is Chromium without windows, and starts in 0.2 s. */
const programs = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
];
/** Where macOS keeps them: not in a folder of the PATH. */
const macApplications = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
/** On a machine without any font Chromium shows no text, and says that a page has none (`innerText` is empty). So a font comes with it. */
const debianPackages = ['chromium-headless-shell', 'fonts-liberation'];

const advice = [
  'The browser tests need Chromium or Chrome. Any of these installs one:',
  '  Debian           sudo apt-get install chromium',
  '  Ubuntu           sudo snap install chromium, or the .deb of Google Chrome',
  '  Fedora           sudo dnf install chromium',
  '  macOS            brew install --cask google-chrome',
].join('\n');

/** @param {readonly string[]} folders @param {readonly string[]} applications @returns {string | null} */
function lookUp(folders, applications) {
  return findPrograms(programs, folders)[0] ?? applications.find(isExecutable) ?? null;
}

/** @returns {string} full path. If there is no such program, throws an error that says how to get one */
export function findChromium(folders = usualFolders(), applications = macApplications) {
  const found = lookUp(folders, applications);
  if (found === null) throw new Error(advice);
  return found;
}

/**
 * Makes sure that there is a Chromium. If there is none, installs it on Debian as root; elsewhere throws an error that says how to
 * get one. (Ubuntu's package is a snap, which apt-get cannot install in a container: there, too, the error says so.)
 * @param {(line: string) => void} say
 */
export function ensureChromium(say) {
  if (lookUp(usualFolders(), macApplications) !== null) return;
  if (!canInstall()) throw new Error(advice);
  say('Installing chromium-headless-shell with apt-get (no Chromium on this machine)');
  try {
    installPackages(debianPackages, []);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${advice}`);
  }
  findChromium();
}
