// @ts-check
// The configuration of both nginx peers, tuned as an operator would for speed: unbounded keep-alive on both sides, no access log,
// one worker.

/**
 * @typedef {object} NginxOptions
 * @property {string} dir for the pid file and temporary files
 * @property {number} port
 * @property {number} workers
 * @property {number} upstreamPort
 * @property {string} prefix the path that is replaced by `/` on the way to the service
 * @property {{ luaDir: string, settings: Record<string, string | number> } | null} lua
 */

/** Folder of Debian's dynamic modules. */
export const modulesDir = '/usr/lib/nginx/modules';
const everyTemporaryPath = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** @param {NginxOptions} options */
export function nginxConfig({ dir, port, workers, upstreamPort, prefix, lua }) {
  return `${lua === null ? '' : loadLua}daemon off;
${process.getuid?.() === 0 ? 'user root; # the folder of this run is closed to others\n' : ''}worker_processes ${workers};
worker_rlimit_nofile 65536;
pid ${dir}/nginx.pid;
error_log stderr warn;
events { worker_connections 32768; }
http {
  access_log off;
  server_tokens off;
  tcp_nodelay on;
  sendfile on;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_max_body_size 10m;
  client_body_buffer_size 128k;
${everyTemporaryPath.map((name) => `  ${name}_temp_path ${dir}/${name};`).join('\n')}
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  upstream service {
    server 127.0.0.1:${upstreamPort};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
  }
${lua === null ? '' : luaInit(lua)}  server {
    listen 127.0.0.1:${port} backlog=16384;
    location ${prefix} {
${lua === null ? '' : luaAccess}      proxy_pass http://service/;
    }
    # Of the settings that were tried this took the least CPU per GiB: four buffers of 64 KiB took 483 ms, one of 64 KiB without
    # buffering 600 ms, and the default of small buffers without a temporary file 883 ms.
    location ${prefix}bytes/ {
${lua === null ? '' : luaAccess}      proxy_max_temp_file_size 0;
      proxy_buffer_size 64k;
      proxy_buffers 4 64k;
      proxy_busy_buffers_size 128k;
      proxy_pass http://service/bytes/;
    }
    location ${prefix}upload {
${lua === null ? '' : luaAccess}      proxy_request_buffering off;
      client_body_buffer_size 64k;
      proxy_pass http://service/upload;
    }
    # Without buffering, so that each event is passed on when it comes.
    location ${prefix}events/ {
${lua === null ? '' : luaAccess}      proxy_buffering off;
      proxy_read_timeout 600s;
      proxy_pass http://service/events/;
    }
  }
}
`;
}

const loadLua = `load_module ${modulesDir}/ndk_http_module.so;
load_module ${modulesDir}/ngx_http_lua_module.so;
`;

/** @param {{ luaDir: string, settings: Record<string, string | number> }} lua */
const luaInit = ({ luaDir, settings }) => `  lua_package_path "${luaDir}/?.lua;/usr/share/lua/5.1/?.lua;;";
  init_by_lua_block { require("metered").init(${luaTable(settings)}) }
`;

// A location with a proxy_set_header of its own loses those of the http block, so `Connection` is repeated here.
const luaAccess = `      access_by_lua_block { require("metered").access() }
      proxy_set_header Connection "";
      proxy_set_header Authorization "";
      proxy_set_header X-ACF-Usage-Id $request_id;
`;

/** @param {Record<string, string | number>} settings */
function luaTable(settings) {
  const fields = Object.entries(settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  return `{ ${fields.join(', ')} }`;
}
