# make install: the programs, their units, users and folders, the demo's settings, and the library with its headers for
# programs of one's own (pkg-config shoal).
PREFIX     ?= /usr/local
sysconfdir ?= /etc
DESTDIR    ?=
LIBDIR      = $(DESTDIR)$(PREFIX)/lib
INCLUDEDIR  = $(DESTDIR)$(PREFIX)/include/shoal
VERSION     = $(shell sed -n 's/.*SHOAL_VERSION "\([0-9.]*\)"/\1/p' common/actor/command.h)
# The headers that such a program includes (tests/example), and those that they include.
API         = common/checkpoint/world.h common/group/group.h common/crypto/identity.h
API_HEADERS = $(sort $(filter %.h %.def,$(shell printf '\043include "%s"\n' $(API) | $(CC) -I. -MM -x c -)))

install: all                                    ## Install (PREFIX, DESTDIR, sysconfdir)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/systemd/system \
	    $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d \
	    $(DESTDIR)$(PREFIX)/share/shoal/demo $(DESTDIR)$(sysconfdir)/shoal
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	$(if $(filter 1,$(CUDA)),install -D -m 755 $(CUDA_LIB) $(DESTDIR)$(PREFIX)/lib/shoal/libshoal-cuda.so)
	for u in systemd/*.in; do sed -e 's#@bindir@#$(PREFIX)/bin#g' -e 's#@sysconfdir@#$(sysconfdir)#g' $$u \
	    > $(B)/$$(basename $${u%.in}) || exit 1; done
	for u in systemd/*.service.in; do install -m 644 $(B)/$$(basename $${u%.in}) $(DESTDIR)$(PREFIX)/lib/systemd/system || exit 1; done
	install -m 644 systemd/*.target $(DESTDIR)$(PREFIX)/lib/systemd/system
	for d in systemd/*.service.d; do install -d $(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename $$d) && \
	    install -m 644 $$d/* $(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename $$d) || exit 1; done
	install -m 644 systemd/shoal.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/shoal.conf
	install -m 644 $(B)/shoal.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/shoal.conf
	install -m 644 config/demo/* $(DESTDIR)$(PREFIX)/share/shoal/demo
	install -m 644 systemd/shoal.env $(DESTDIR)$(PREFIX)/share/shoal
	install -d $(LIBDIR)/pkgconfig
	install -m 644 $(B)/libshoal.a $(LIBDIR)
	sed -e 's#@prefix@#$(PREFIX)#g' -e 's#@libs@#$(LIBS)#g' -e 's#@version@#$(VERSION)#g' common/shoal.pc.in > $(LIBDIR)/pkgconfig/shoal.pc
	for h in $(API_HEADERS); do install -D -m 644 $$h $(INCLUDEDIR)/$$h || exit 1; done

uninstall:                                      ## Remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(BINS)))
	rm -rf $(INCLUDEDIR) $(LIBDIR)/libshoal.a $(LIBDIR)/pkgconfig/shoal.pc
	rm -rf $(DESTDIR)$(PREFIX)/share/shoal $(DESTDIR)$(PREFIX)/lib/shoal $(DESTDIR)$(PREFIX)/lib/systemd/system/shoal*
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/shoal.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/shoal.conf
