"""A hub for a class on one machine: `make hub`. What it needs and what was tried: docs/instructor/hub.md.

HUB_STUDENTS and HUB_TEACHERS are names with spaces between them.
HUB_USERS=pretend  (the default) no accounts: one password for all (HUB_PASSWORD, of 8 letters or more),
    homes below HUB_STATE; all runs as whoever started the hub. For trying it out.
HUB_USERS=system   these are accounts of the machine, with their passwords. The hub runs as root, and the
    course must be a copy without the answers, which students can read and not write.
HUB_LTI=lti.toml  signs in whom Moodle or Canvas sends (LTI 1.3); docs/instructor/hub.md says what is in it.
HUB_VOTES=/srv/votes  is the folder that predictions are shared into (docs/instructor/votes.md); it is made.
HUB_LANGUAGE=zh  gives out the course in that language, which must be built already.
"""

import os
import secrets
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

here = Path(__file__).resolve().parent
course = here.parents[1]
state = Path(os.environ.get("HUB_STATE", course / "build" / "hub")).resolve()
exchange = Path(os.environ.get("HUB_EXCHANGE", f"{state}-exchange")).resolve()
port = int(os.environ.get("HUB_PORT", "8000"))
real = os.environ.get("HUB_USERS", "pretend") == "system"
teachers = os.environ.get("HUB_TEACHERS", "teacher")
everybody = set(f"{os.environ.get('HUB_STUDENTS', 'ada ben')} {teachers}".split())
if real and (course / "solutions").exists():
    raise SystemExit(
        "students would read solutions/: start the hub from a copy without the answers "
        "(docs/instructor/README.md says how to make one)"
    )
language = os.environ.get("HUB_LANGUAGE", "")
if language and not (course / "build" / language / "notebooks").is_dir():
    raise SystemExit(
        f"build/{language} is missing: `python -m workshop.translation build {language}` makes it"
    )

state.mkdir(parents=True, exist_ok=True)
state.chmod(0o700)  # tokens, and the secret of the cookies
exchange.mkdir(parents=True, exist_ok=True)
# All may write, as nbgrader requires: a teacher makes the course's folder in it. It is sticky: nobody removes
# or renames what is another one's.
exchange.chmod(0o1777)

if votes := os.environ.get("HUB_VOTES"):  # all may write, the first teacher looks, nobody removes
    Path(votes).mkdir(parents=True, exist_ok=True)
    Path(votes).chmod(0o1733)
    if real:
        shutil.chown(votes, teachers.split()[0])

c = get_config()  # noqa: F821
# Only this machine reaches it. For a class, put a web server with a certificate in front of it.
c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{port + 1}"
if "CHP" in os.environ:  # JupyterHub's usual proxy, for Node.js: the command that starts it
    c.ConfigurableHTTPProxy.command = shlex.split(os.environ["CHP"])
    c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port + 2}"
    c.ConfigurableHTTPProxy.pid_file = str(state / "proxy.pid")
else:
    sys.path.insert(0, str(here))
    from proxy import InnerProxy

    c.JupyterHub.proxy_class = InnerProxy
c.JupyterHub.db_url = f"sqlite:///{state / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(state / "cookie_secret")

# Who may sign in. Universities put their own here (OAuthenticator).
if real:
    c.JupyterHub.authenticator_class = "pam"
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
else:
    password = os.environ.get("HUB_PASSWORD") or secrets.token_urlsafe(6)
    c.JupyterHub.authenticator_class = "shared-password"
    c.SharedPasswordAuthenticator.user_password = password
    if not os.environ.get("HUB_PASSWORD"):
        print(f"Sign in as one of {', '.join(sorted(everybody))}, with the password {password}", flush=True)
    c.JupyterHub.spawner_class = "jupyterhub.spawner.SimpleLocalProcessSpawner"
    c.Spawner.args = ["--allow-root"]  # if root tries it out, as in a container
    c.SimpleLocalProcessSpawner.home_dir_template = str(state / "homes" / "{username}")
if lti := os.environ.get("HUB_LTI"):
    from ltiauthenticator.lti13.auth import LTI13Authenticator

    class ByMail(LTI13Authenticator):
        """Names are the beginnings of e-mail addresses, as in a class list from a platform's export."""

        def normalize_username(self, username):
            return super().normalize_username(username.partition("@")[0])

    c.JupyterHub.authenticator_class = ByMail
    for name, value in tomllib.loads(Path(lti).read_text(encoding="utf-8")).items():
        setattr(c.LTI13Authenticator, name, set(value) if name == "client_id" else value)
c.Authenticator.allowed_users = everybody

# start.py lays out the notebooks and becomes jupyterhub-singleuser.
c.Spawner.cmd = [sys.executable, str(here / "start.py")]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",  # for terminals
    "OMP_NUM_THREADS": "1",  # otherwise each kernel takes all cores
    "NBGRADER_EXCHANGE": str(exchange),
    "HUB_TEACHERS": teachers,
    "HUB_LANGUAGE": language,
    **({"TUTORIAL_VOTES": str(Path(votes).resolve())} if votes else {}),
    "HUB_USERS": "system" if real else "pretend",
}
c.Spawner.start_timeout = 120  # a class that starts in one minute shares disk and cores
c.Spawner.http_timeout = 120
c.JupyterHub.concurrent_spawn_limit = 20
# A spawner of local processes limits no memory, so the number of servers is limited, at 1 GB for each.
gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
c.JupyterHub.active_server_limit = int(os.environ.get("HUB_MOST", max(2, gigabytes - 2)))
c.Spawner.mem_limit = "1.5G"  # SystemdSpawner, DockerSpawner and KubeSpawner keep to it
