# Stands in for the published Python image: Debian's Python, and the wheels of the lock files, so that the
# images of the services are built without a network.
FROM localhost/socratic-bench-debian
RUN apt-get update --quiet=2 \
 && apt-get install --quiet=2 --yes --no-install-recommends python3 python3-pip python3-venv \
 && ln -s /usr/bin/python3 /usr/local/bin/python \
 && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
COPY wheels /wheels
RUN printf '[global]\nno-index = true\nfind-links = /wheels\n' > /etc/pip.conf
